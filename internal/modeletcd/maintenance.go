package modeletcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
)

const quotaBytes = 2 << 30 // etcd's default

func (m *Model) status(*pb.StatusRequest) (*pb.StatusResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	resp := &pb.StatusResponse{
		Header:      m.header(),
		Version:     version.Version,
		Leader:      memberID,
		RaftTerm:    m.term,
		DbSize:      m.size,
		DbSizeInUse: m.keys.bytes,
		DbSizeQuota: quotaBytes,
	}
	for _, a := range m.alarms() {
		resp.Errors = append(resp.Errors, a.String())
	}
	return resp, nil
}

func (m *Model) alarms() []*pb.AlarmMember {
	if !m.full {
		return nil
	}
	return []*pb.AlarmMember{{MemberID: memberID, Alarm: pb.AlarmType_NOSPACE}}
}

func (m *Model) alarm(r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	resp := &pb.AlarmResponse{Header: m.header()}
	switch {
	case r.Action == pb.AlarmRequest_GET && (r.Alarm == pb.AlarmType_NONE || r.Alarm == pb.AlarmType_NOSPACE):
		resp.Alarms = m.alarms()
	case r.Action == pb.AlarmRequest_DEACTIVATE && r.Alarm == pb.AlarmType_NOSPACE && r.MemberID == memberID:
		resp.Alarms = m.alarms()
		m.full = false
	default:
		return nil, unimplemented("AlarmRequest " + r.String())
	}
	return resp, nil
}

func (m *Model) defragment(*pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.size = m.keys.bytes
	return &pb.DefragmentResponse{Header: m.header()}, nil
}

func (m *Model) memberList(*pb.MemberListRequest) (*pb.MemberListResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &pb.MemberListResponse{Header: m.header(), Members: []*pb.Member{{ID: memberID, Name: "model"}}}, nil
}
